"""Expectations of a table's rows, in Great Expectations' words, and the effect of a failure."""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sluice.language.model import Model

OnFailure = Literal["quarantine", "stop", "warn"]
ExpectationScope = Literal["batch", "table"]
OWN_KEYS = ("type", "on_failure", "over", "kwargs")
COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")

# Rules that a single row can be judged by, without others: those that `quarantine` accepts.
ROW_RULES = (
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_null",
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
    "expect_column_value_lengths_to_be_between",
    "expect_column_value_lengths_to_equal",
    "expect_column_values_to_match_regex",
    "expect_column_values_to_not_match_regex",
    "expect_column_values_to_match_regex_list",
    "expect_column_values_to_not_match_regex_list",
    "expect_column_values_to_match_like_pattern",
    "expect_column_values_to_not_match_like_pattern",
    "expect_column_pair_values_a_to_be_greater_than_b",
    "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_to_be_in_set",
    "expect_multicolumn_sum_to_equal",
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
)


class Expectation(Model):
    """`{type: expect_column_values_to_not_be_null, column: x, on_failure: stop}`."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    type: str
    on_failure: OnFailure = "warn"
    over: ExpectationScope = "batch"
    kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather_arguments(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "kwargs" in data:
            return data
        own = {key: value for key, value in data.items() if key in OWN_KEYS}
        return {**own, "kwargs": {k: v for k, v in data.items() if k not in OWN_KEYS}}

    @field_validator("type")
    @classmethod
    def _looks_like_an_expectation(cls, name: str) -> str:
        if not name.startswith("expect_"):
            raise ValueError(
                f"{name!r} is not an expectation: names of Great Expectations begin with expect_"
            )
        return name

    @model_validator(mode="after")
    def _a_whole_table_only_warns(self) -> Self:
        if self.over == "table" and self.on_failure != "warn":
            raise ValueError(
                f"an expectation over the whole table can't {self.on_failure} a batch;"
                " use on_failure: warn, or over: batch"
            )
        return self

    @property
    def quarantine_problem(self) -> str:
        """Reason why it can't quarantine rows; '' if it can, or needn't."""
        if self.on_failure != "quarantine" or self.type in ROW_RULES:
            return ""
        return (
            f"{self.type} is not a rule for single rows, so it can't send rows to quarantine;"
            f" use stop or warn. accepted with quarantine: {', '.join(ROW_RULES)}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that its arguments name."""
        single = [self.kwargs[key] for key in COLUMN_ARGUMENTS if key in self.kwargs]
        several = [self.kwargs[key] for key in COLUMN_LIST_ARGUMENTS if key in self.kwargs]
        return tuple(map(str, [*single, *(column for many in several for column in many)]))

    @property
    def other_table(self) -> str:
        """Table that it compares with; '' if none."""
        return str(self.kwargs.get("other_table_name", ""))

    @property
    def label(self) -> str:
        """Short text for reports: `column values to not be null (household_id)`."""
        subject = ", ".join(self.columns)
        text = self.type.removeprefix("expect_").replace("_", " ")
        return f"{text} ({subject})" if subject else text
