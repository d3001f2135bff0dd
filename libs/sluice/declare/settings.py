"""Settings that change how work is done, never what a table means; and what they must not hold.

Editors of YAML name tables, columns and settings. Code comes from those who install Python modules
and set up Spark; a configuration can only pick from it. Secrets come from the environment, which is
not controlled by the files' authors; it may also name code.
"""

import re
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import Field, WithJsonSchema, field_validator

from sluice.declare.document import Document, Where
from sluice.language import Model
from sluice.language.interval import Duration

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


_LOADS = (
    r"(?!spark\.).*",  # the JVM's own, as spark-submit takes them
    r"spark\.(jars|files|archives|plugins|serializer|extraListeners|submit|metrics)\b.*",
    r"spark\.(pyspark|python|r|executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\..*",
    r"spark\.(driver|executor|yarn\.am)\.(extra|default|userClassPath).*",
    r"spark\.kubernetes\..*podTemplate.*",
    r"spark\.yarn\.(jars|archive|dist)\b.*",
    r"spark\.sql\.(extensions|catalog|hive|queryExecutionListeners|cache\.serializer)\b.*",
    r"spark\..*([iI]mpl|[cC]lass(es)?|[pP]rovider|[fF]actory|[lL]isteners|[sS]cript|[cC]odecs)",
)
_LOADING = re.compile("|".join(_LOADS))
_CLASS = re.compile(r"([a-z_]\w*\.)+[A-Z]\w*[a-z]\w*")
_OPTIONS = (
    r"impl$|class|provider|factory|listener|script|codec|reporter|interceptor|serializ|driver"
    r"|callback|handler|plugin|verifier|transform|extension|init(ialization)?(sql|statement)?$"
)
_OF_OPTION = re.compile(_OPTIONS, re.IGNORECASE)
_SERVER = re.compile(r"jdbc:[a-z0-9]+(:[a-z0-9]+)*(://|:@)", re.IGNORECASE)
_PARAMETER = re.compile(r"([\w.]+)\s*=\s*([^?;&,()]*)")
# Options whose text is for a server: SQL, and names of its objects, which may look like a class.
OF_SERVER = frozenset(
    {
        *("dbtable", "query", "preparequery", "customschema", "sessioninitstatement"),
        *("subscribe", "subscribepattern", "kafka.group.id", "groupidprefix"),
    }
)


def check_setting(name: str, value: str = "") -> None:
    """Raise ValueError for a Spark setting that loads code or runs a program."""
    if _LOADING.fullmatch(name) or _names_a_class(value):
        raise ValueError(
            f"{name} may load code, so it can't be set in YAML; set it where Spark is set up: in "
            "spark-defaults.conf of SPARK_CONF_DIR"
        )


def check_option(name: str, value: str) -> None:
    """Raise ValueError for a reader's option that names code, or a database in this process.

    Readers pass on all options: to Hadoop, to Kafka's client, to a database's driver.
    """
    known = name.lower()
    if known == "url":
        _check_url(value)
    elif known in OF_SERVER:
        return
    elif _OF_OPTION.search(known):
        raise ValueError(f"`{name}` may load code, so it can't be set in YAML")
    elif _names_a_class(value):
        raise ValueError(f"`{name}` names a class of Java: that may load code")


def _check_url(url: str) -> None:
    if url and not _SERVER.match(url):
        raise ValueError("`url` must name a database's server: jdbc:postgresql://host/database")
    for name, value in _PARAMETER.findall(unquote(url)):
        if _OF_OPTION.search(name) or _names_a_class(value):
            raise ValueError(f"`{name}` in a `url` may load code, so it can't be set in YAML")


def _names_a_class(value: str) -> bool:
    return any(_CLASS.fullmatch(part.strip()) for part in value.split(","))


def check_module(name: str) -> None:
    """Raise ValueError for a module that is not a user's own."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name!r} is not the name of a module; write e.g. shop.aggregates")
    if name.partition(".")[0] in {*sys.stdlib_module_names, "sluice"}:
        raise ValueError(f"{name} was not made for Sluice: write a module of your own")


SECRET = re.compile(
    r"password|secret|token|credential|jaas|(access|account|api)[._]?key", re.IGNORECASE
)
IN_URL = re.compile(r"[?&;](user|password)=[^?&;]|//[^/@\s]*:[^/@\s]+@", re.IGNORECASE)


def find_misplaced(data: Any, document: Document, where: Where) -> Iterator[tuple[Where, str]]:
    """Yield a table's options that hold a secret or may load code, with the mistake."""
    options = data.get("options") if isinstance(data, dict) else None
    for name, value in options.items() if isinstance(options, dict) else ():
        at = (*where, "options", name)
        own = document.own(at, value if isinstance(value, str) else "")
        if (SECRET.search(name) and (own or not isinstance(value, str))) or IN_URL.search(own):
            yield (at, f"`{name}` holds a secret, which must not be in a file: write ${{VARIABLE}}")
        try:
            check_option(name, own)
        except ValueError as error:
            yield at, str(error)
