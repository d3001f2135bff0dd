"""Settings that change how work is done, never what a table means."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, field_validator

from sluice.declare.allowed import check_setting
from sluice.language.interval import Duration
from sluice.language.model import Model

Options = Annotated[
    dict[str, str],
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    ),
]

Driver = Literal["postgresql", "s3"]
# Settings of Spark SQL that affect how it computes, not the result.
_OF_PACE = ("shuffle.", "adaptive.", "codegen.", "files.", "autoBroadcast", "ui.", "warehouse.")
PACE = tuple(f"spark.sql.{part}" for part in _OF_PACE)


class SparkSettings(Model):
    """Settings of Spark: its place, who commits small changes, and what else it can read."""

    engine: Literal["submit", "connect"] = "submit"
    master: str = "local[*]"
    remote: str = "sc://127.0.0.1:15002"
    conf: Options = Field(default_factory=dict)
    commit: Literal["auto", "spark", "delta-rs"] = "auto"
    small_batches: Literal["auto", "spark"] = "auto"
    small_changelog: int = Field(default=500_000, ge=0)
    drivers: tuple[Driver, ...] = ()

    @property
    def computes_here(self) -> bool:
        """True if small batches are computed in their own process, where that is possible."""
        semantic = (n for n in self.conf if n.startswith("spark.sql.") and not n.startswith(PACE))
        return self.small_batches == "auto" and self.commit != "spark" and not any(semantic)

    @field_validator("conf", mode="before")
    @classmethod
    def _as_texts(cls, conf: Any) -> Any:
        return (
            {key: as_option(value) for key, value in conf.items()}
            if isinstance(conf, dict)
            else conf
        )

    @field_validator("conf")
    @classmethod
    def _loads_no_code(cls, conf: dict[str, str]) -> dict[str, str]:
        for name, value in conf.items():
            check_setting(name, value)
        return conf


class QualitySettings(Model):
    """Settings of quality reports: their folder, and the number of failing rows that they show."""

    reports: str = "quality"
    data_docs: bool = False
    samples: int = Field(default=20, ge=0)


class AirflowSettings(Model):
    """Settings of DAGs."""

    tasks: Literal["auto", "table", "pipeline"] = "auto"
    retries: int = Field(default=2, ge=0)
    retry_delay: Duration = Duration("1 minute")
    deadline: Duration | None = None
    webhook: str = ""
    owner: str = "sluice"
    python: str = ""
    tags: tuple[str, ...] = ()

    @field_validator("retry_delay", "deadline")
    @classmethod
    def _is_fixed(cls, length: Duration | None) -> Duration | None:
        if length and length.months:
            raise ValueError(f"{length.text!r} has no fixed length; write e.g. '30 days'")
        return length

    @field_validator("webhook")
    @classmethod
    def _is_address(cls, webhook: str) -> str:
        if webhook and not webhook.startswith(("https://", "http://")):
            raise ValueError("it is not an address; write https://...")
        return webhook


def as_option(value: Any) -> Any:
    """Convert YAML's numbers and booleans to Spark's spelling of options."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
