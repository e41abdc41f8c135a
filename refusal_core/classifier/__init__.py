"""The five-class classifier of prompt/response pairs, and the phrase matcher that stands beside it.

>>> from refusal_core.classifier import load
>>> classifier = load("starter")
"""

from refusal_core.classifier.predict import Classifier, load
from refusal_core.classifier.result import CheckpointInfo, Classification, TokensRead

__all__ = ["CheckpointInfo", "Classification", "Classifier", "TokensRead", "load"]
