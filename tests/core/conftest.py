from hypothesis import settings

# No test is timed: a slow machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
