"""What people say about answers, kept in SQLite or, for a team, in PostgreSQL.

>>> from refusal_core.store import Feedback, Store
>>> with Store.open("sqlite:///feedback.sqlite") as store:  # doctest: +SKIP
...     store.add_feedback([Feedback(prompt="p", response="r", right="compliant", who="ana")])
"""

from refusal_core.store.database import SETTING, default_url
from refusal_core.store.feedback import Feedback
from refusal_core.store.scorecards import SignOff, StoredRun
from refusal_core.store.store import Store

__all__ = ["SETTING", "Feedback", "SignOff", "Store", "StoredRun", "default_url"]
