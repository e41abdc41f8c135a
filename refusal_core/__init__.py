"""Observe and measure how language models refuse. Imports nothing heavy: torch and transformers load when needed."""
