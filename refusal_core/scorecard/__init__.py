"""Assertions on checkpoints, with verdicts that know how sure they are.

>>> from refusal_core.scorecard import BesideSuite, read_suite, run
>>> scorecard = run(read_suite(path), BesideSuite(path.parent))  # doctest: +SKIP
"""

from refusal_core.scorecard.evaluate import Choice, run
from refusal_core.scorecard.resolver import BesideSuite, Resolver, WithinRoots
from refusal_core.scorecard.result import ColumnResult, Evidence, Example, Row, Scorecard
from refusal_core.scorecard.suite import Suite, SuiteFile, read_suite, schema

__all__ = [
    "BesideSuite", "Choice", "ColumnResult", "Evidence", "Example", "Resolver", "Row", "Scorecard", "Suite",
    "SuiteFile", "WithinRoots", "read_suite", "run", "schema",
]  # fmt: skip
