"""What a table's rows are expected to be, in Great Expectations' words, and what a failure does."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from sluice.specs.model import Model

OnFailure = Literal["quarantine", "stop", "warn"]
OWN_KEYS = ("type", "on_failure", "kwargs")
COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")


class Expectation(Model):
    """`{type: expect_column_values_to_not_be_null, column: x, on_failure: stop}`."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    type: str
    on_failure: OnFailure = "warn"
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
            raise ValueError(f"{name!r} is no expectation: Great Expectations' begin with expect_")
        return name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its arguments name."""
        single = [self.kwargs[key] for key in COLUMN_ARGUMENTS if key in self.kwargs]
        several = [self.kwargs[key] for key in COLUMN_LIST_ARGUMENTS if key in self.kwargs]
        return tuple(map(str, [*single, *(column for many in several for column in many)]))

    @property
    def label(self) -> str:
        """Short text for reports: `column values to not be null (household_id)`."""
        subject = ", ".join(self.columns)
        text = self.type.removeprefix("expect_").replace("_", " ")
        return f"{text} ({subject})" if subject else text
