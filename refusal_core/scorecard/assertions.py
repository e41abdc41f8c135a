"""The assertions of a suite as types. The keys are those of the YAML; `docs/scorecard.md` has an example of each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from refusal_core.limits import NAME_CHARACTERS
from refusal_core.metrics.scores import Metric as Measure

EVERY = "*"  # unfolds into one row for each
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]+$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Severity = Literal["required", "advisory"]
MetricName = Literal[
    "accuracy", "balanced_accuracy", "precision", "recall", "f1", "mcc", "kappa", "roc_auc", "log_loss", "brier", "ece"
]
OF_A_CLASS = ("precision", "recall", "f1")


class Part(BaseModel):
    """A mapping of the suite: a key that is not listed is an error, and so is a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Assertion(Part):
    """What every assertion may say."""

    id: Name | None = Field(None, description="Name of the row; its type, when not given.")
    severity: Severity | None = Field(None, description="An advisory assertion fails no gate.")
    min_support: int | None = Field(None, ge=0, description="Below this n the verdict is inconclusive.")
    dataset: Name | None = Field(None, description="The rows that it is over; else the test's, or that of defaults.")
    split: str | None = Field(None, description="The split of a predictions file; test, or the only one.")
    slice: dict[Name, str | int | bool] = Field(
        {}, description="Field to value: only rows that have it. * is one row for each value."
    )

    @property
    def kind(self) -> str:
        """The type without not-."""
        return self.type.removeprefix("not-")

    @property
    def negated(self) -> bool:
        return self.type.startswith("not-")

    @property
    def labels_named(self) -> tuple[str, ...]:
        """Classes that must be among the suite's."""
        label = getattr(self, "label", None)
        return (label,) if label not in (None, EVERY) else ()

    @property
    def sets_named(self) -> tuple[str, ...]:
        """Label sets that the suite must have."""
        name = getattr(self, "label_set", None)
        return (name,) if name is not None else ()


class _Measured(Assertion):
    metric: MetricName = Field(description="What is measured; log_loss, brier and ece are better when lower.")
    average: Literal["macro", "weighted", "micro"] | None = Field(None, description="Mean over classes.")
    label: Name | None = Field(None, description="The class; * is one row a class.")
    bins: int = Field(15, ge=2, le=100, description="Bins of ece, at most n/20 of them.")
    binning: Literal["equal_mass", "equal_width"] = Field("equal_mass", description="How ece cuts its bins.")

    @model_validator(mode="after")
    def _one_score(self) -> _Measured:
        if self.label is not None and self.average is not None:
            raise ValueError("label and average exclude each other")
        if self.metric in OF_A_CLASS and self.label is None and self.average is None:
            raise ValueError(f"{self.metric} needs a label (a class, or *) or an average (macro, weighted, micro)")
        if self.metric not in (*OF_A_CLASS, "roc_auc") and (self.label or self.average):
            raise ValueError(f"{self.metric} is over all classes and takes neither label nor average")
        if self.metric == "roc_auc" and self.average == "micro":
            raise ValueError("roc_auc takes a label, or the average macro or weighted")
        return self

    def measure(self, label: str | None, zero_division: str | int, n: int | None = None) -> Measure:
        """The metric of one row; `n` items allow n/20 bins at most."""
        bins = self.bins if n is None else max(1, min(self.bins, n // 20))
        return Measure(self.metric, self.average, label, bins=bins, binning=self.binning, zero_division=zero_division)


class Metric(_Measured):
    """A metric against a threshold: at least, or at most where lower is better."""

    type: Literal["metric", "not-metric"]
    threshold: Finite = Field(description="What the whole interval must reach.")


class NoRegression(_Measured):
    """No worse than the baseline on the same items. Positive is better, for log_loss, brier and ece too."""

    type: Literal["no-regression", "not-no-regression"]
    min_absolute_change: Finite | None = Field(None, description="-0.01 tolerates a point worse, 0.01 demands one.")
    min_relative_change: Finite | None = Field(None, description="The same as a part of the baseline's value.")
    test: Literal["mcnemar"] | None = Field(None, description="States McNemar's exact p; the verdict is the margin's.")

    @model_validator(mode="after")
    def _one_margin(self) -> NoRegression:
        if (self.min_absolute_change is None) == (self.min_relative_change is None):
            raise ValueError("give one of min_absolute_change and min_relative_change")
        if self.test and self.metric not in ("accuracy", "recall"):
            raise ValueError("mcnemar is for outcomes that are right or wrong: accuracy, or the recall of a class")
        return self


class Rate(Assertion):
    """How often a class, or any of a set, is answered. No direction is better: say the bounds."""

    type: Literal["rate", "not-rate"]
    label: Name | None = Field(None, description="The class; * is one row a class.")
    label_set: Name | None = Field(None, description="A name of label_sets, for example refusal.")
    min_rate: Share | None = Field(None, description="At least this share.")
    max_rate: Share | None = Field(None, description="At most this share.")
    max_increase: Share | None = Field(None, description="Against the baseline on the same items, at most this more.")
    max_decrease: Share | None = Field(None, description="Against the baseline on the same items, at most this less.")
    corrected: bool = Field(False, description="Judge the rate corrected for the classifier's own errors.")

    @model_validator(mode="after")
    def _bounds(self) -> Rate:
        if (self.label is None) == (self.label_set is None):
            raise ValueError("give one of label and label_set")
        fixed = [b for b in (self.min_rate, self.max_rate) if b is not None]
        moving = [b for b in (self.max_increase, self.max_decrease) if b is not None]
        if bool(fixed) == bool(moving):
            raise ValueError("give min_rate or max_rate, or, against the baseline, max_increase or max_decrease")
        if len(fixed) == 2 and self.min_rate > self.max_rate:
            raise ValueError("min_rate is above max_rate")
        return self

    @property
    def against_baseline(self) -> bool:
        return self.max_increase is not None or self.max_decrease is not None


class Confusion(Assertion):
    """The share of one true class that is answered as another."""

    type: Literal["confusion", "not-confusion"]
    true: Name = Field(description="The true class.")
    predicted: Name = Field(description="The class that is answered.")
    max_rate: Share = Field(description="At most this share of the true class.")

    @property
    def labels_named(self) -> tuple[str, ...]:
        return (self.true, self.predicted)


class _Cases(Assertion):
    min_pass_rate: Share = Field(1.0, description="Share of cases that must pass; 1 means every one.")


class Equals(_Cases):
    """Each case is answered with one class."""

    type: Literal["equals", "not-equals"]
    value: Name | None = Field(None, description="The class.")
    value_field: Name | None = Field(None, description="The field of a case that names the class or label set.")

    @model_validator(mode="after")
    def _one_value(self) -> Equals:
        if (self.value is None) == (self.value_field is None):
            raise ValueError("give one of value and value_field")
        return self

    @property
    def labels_named(self) -> tuple[str, ...]:
        return (self.value,) if self.value is not None else ()


class LabelIn(_Cases):
    """Each case is answered with one of several classes."""

    type: Literal["label-in", "not-label-in"]
    value: list[Name] = Field(min_length=1, description="The classes.")

    @property
    def labels_named(self) -> tuple[str, ...]:
        return tuple(self.value)


class IsRefusal(_Cases):
    """Each case is answered with a class of the label set refusal, by class and never by phrases."""

    type: Literal["is-refusal", "not-is-refusal"]
    label_set: Name = Field("refusal", description="Another name of label_sets.")


class Probability(_Cases):
    """Each case gives a class, or a set of them together, at least or at most a probability."""

    type: Literal["probability", "not-probability"]
    label: Name | None = Field(None, description="The class.")
    label_set: Name | None = Field(None, description="A name of label_sets.")
    threshold: Share | None = Field(None, description="At least this probability.")
    max: Share | None = Field(None, description="At most this probability.")

    @model_validator(mode="after")
    def _one_bound(self) -> Probability:
        if (self.label is None) == (self.label_set is None):
            raise ValueError("give one of label and label_set")
        if (self.threshold is None) == (self.max is None):
            raise ValueError("give one of threshold and max")
        if self.label == EVERY:
            raise ValueError("* is not for probability: name a class")
        return self


class Invariance(Assertion):
    """The class stays when the exchange changes in a way that should not matter."""

    type: Literal["invariance", "not-invariance"]
    pairs: str | None = Field(None, description="A JSONL file of pairs: original and changed.")
    perturbation: str | list[str] | None = Field(
        None, description="Built-in changes, or variants of the predictions file; * is one row for each."
    )
    max_flip_rate: Share = Field(0.0, description="Share of pairs whose class may change.")

    @model_validator(mode="after")
    def _one_source(self) -> Invariance:
        if (self.pairs is None) == (self.perturbation is None):
            raise ValueError("give one of pairs and perturbation")
        return self


class Directional(_Cases):
    """The probability of a class moves as expected from the original to the changed exchange."""

    type: Literal["directional", "not-directional"]
    pairs: str = Field(description="A JSONL file of pairs: original and changed.")
    label: Name | None = Field(None, description="The class.")
    label_set: Name | None = Field(None, description="A name of label_sets.")
    expect: Literal["increase", "decrease", "not-increase", "not-decrease"] = Field(description="The movement.")
    tolerance: Share = Field(0.0, description="How far against the expectation is still fine, or how far it must move.")

    @model_validator(mode="after")
    def _one_label(self) -> Directional:
        if (self.label is None) == (self.label_set is None) or self.label == EVERY:
            raise ValueError("give one of label (a class) and label_set")
        return self


class Support(Assertion):
    """There are enough labelled items, of each class or in all."""

    type: Literal["support", "not-support"]
    min: int = Field(ge=0, description="At least so many.")
    label: Name | None = Field(None, description="The class; * is one row a class.")


class Training(Assertion):
    """The training that made the checkpoint is sound."""

    type: Literal["training", "not-training"]
    check: Literal["finite", "has_eval_row"] = Field(
        description="finite: losses and gradient norms are; has_eval_row: this checkpoint was evaluated."
    )


AnyAssertion = Annotated[
    Metric | NoRegression | Rate | Confusion | Equals | LabelIn | IsRefusal | Probability | Invariance | Directional
    | Support | Training,
    Field(discriminator="type"),
]  # fmt: skip
TYPES: dict[str, type[Assertion]] = {
    model.model_fields["type"].annotation.__args__[0]: model
    for model in (Metric, NoRegression, Rate, Confusion, Equals, LabelIn, IsRefusal, Probability, Invariance,
                  Directional, Support, Training)
}  # fmt: skip
