"""Great Expectations itself: checks configurations, and judges what isn't compiled.

Only this module imports it, and only inside functions: the import takes five to eight seconds.
Nothing is sent or written: contexts are ephemeral, and its telemetry is off.

Great Expectations' own pages (Data Docs) of the newest results, for those who know them.

They are optional (`quality.data_docs: true`): they load styles and scripts from the internet, and
importing Great Expectations takes seconds. They are made from kept results: nothing is validated
again.
"""

import json
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sluice.declare.table_spec import Expectation
from sluice.extras import require
from sluice.gate.history import newest
from sluice.gate.results import ExpectationOutcome, Json, config
from sluice.gate.suite import SUM, words
from sluice.language.expression import Expression
from sluice.language.names import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WANTED = {"date": "a date", "moment": "a time", "integer": "a whole number", "float": "a number"}
INDEX = "sluice_index"  # in an expectation's meta, because GX orders results by column


def load() -> Any:
    """Return the library, with its telemetry switched off before the import."""
    require("quality", "an expectation")
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx

    return gx


def validate(
    rows: "DataFrame", expectations: Sequence[Expectation], result_format: str | Json = "SUMMARY"
) -> tuple[ExpectationOutcome, ...]:
    """Return each expectation's outcome on `rows`, by GX on Spark: several Spark jobs each."""
    if not expectations:
        return ()
    gx = load()
    suite = gx.ExpectationSuite(
        "batch", expectations=[_build(e, i) for i, e in enumerate(expectations)]
    )
    found = _batch(gx, rows).validate(suite, result_format=result_format).to_json_dict()
    results = sorted(found["results"], key=lambda r: r["expectation_config"]["meta"].pop(INDEX))
    return tuple(_outcome(e, r) for e, r in zip(expectations, results, strict=True))


def _batch(gx: Any, rows: "DataFrame") -> Any:
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_spark("batch", persist=False).add_dataframe_asset("rows")
    whole = asset.add_batch_definition_whole_dataframe("whole")
    return whole.get_batch({"dataframe": rows})


def _build(expectation: Expectation, index: int) -> Any:
    from great_expectations.expectations.registry import get_expectation_impl

    arguments = dict(expectation.kwargs)
    arguments["meta"] = {**arguments.get("meta", {}), INDEX: index}
    if "row_condition" in arguments:
        arguments["row_condition"] = Expression.parse(str(arguments["row_condition"])).sql
        arguments["condition_parser"] = "spark"
    return get_expectation_impl(expectation.type)(**arguments)


def _outcome(expectation: Expectation, result: Json) -> ExpectationOutcome:
    """Return GX's result, with the configuration as the user wrote it."""
    info = result.get("exception_info") or {}
    if "raised_exception" not in info:  # GX nests the exceptions of several failed metrics
        info = next(iter(info.values()), {"raised_exception": False})
    kept = {**result, "expectation_config": config(expectation), "exception_info": dict(info)}
    is_bounded = expectation.type.endswith("_to_be_between") and "column" in expectation.kwargs
    says = words(expectation) if is_bounded else expectation.label
    return ExpectationOutcome(expectation, says, bool(result["success"]), kept)


def mistakes(expectation: Expectation) -> list[str]:
    """Return GX's own complaints about an expectation's name and arguments."""
    load()
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.expectations import registry

    known = registry.list_registered_expectation_implementations()
    if expectation.type not in known:
        return [f"unknown expectation {expectation.type!r}{_instead(expectation.type, known)}"]
    kind = registry.get_expectation_impl(expectation.type)
    try:
        _build(expectation, 0)
    except ValidationError as error:
        problems = [e for e in error.errors() if e["type"] != "type_error.dict"]  # GX's parameters
        return _explain_errors(expectation, problems, list(kind.__fields__))
    except (TypeError, ValueError, OverflowError) as error:  # the last: a huge whole number
        return [f"{expectation.type}: {error}"]
    return []


def not_on_spark(expectation: Expectation) -> list[str]:
    """Return a mistake if GX has the expectation, but not for Spark."""
    load()
    from great_expectations.expectations import registry

    metric = registry.get_expectation_impl(expectation.type).__dict__.get("map_metric")
    engines = registry._registered_metrics.get(f"{metric}.condition", {}).get("providers", {})  # noqa: SLF001
    if not engines or "SparkDFExecutionEngine" in engines:
        return []
    return [f"{expectation.type} can't be evaluated on Spark by Great Expectations"]


def _explain_errors(
    expectation: Expectation, errors: Sequence[Mapping[str, Any]], accepted: Sequence[str]
) -> list[str]:
    """Return one message per argument; pydantic reports every type that a value could have had."""
    by_place: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        by_place.setdefault(tuple(error["loc"]), []).append(error)
    return [
        _explain(expectation.type, several[0], accepted)
        if len(several) == 1
        else f"{expectation.type}: {'.'.join(map(str, place))}: {_none_of(several)}, "
        f"and {expectation.kwargs.get(place[0])!r} is none of these"
        for place, several in by_place.items()
    ]


def _none_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return `a date, a time or a number is expected`."""
    messages = [error["msg"] for error in errors]
    kinds = [
        kind
        for word, kind in WANTED.items()
        if any(word in message.replace("datetime", "moment") for message in messages)
    ]
    *most, last = kinds or ["another type"]
    return f"{', '.join(most)} or {last} is expected" if most else f"{last} is expected"


def _explain(kind: str, error: Mapping[str, Any], accepted: Sequence[str]) -> str:
    field = ".".join(str(part) for part in error["loc"] if part != "__root__")
    if error["type"] == "value_error.extra":
        return f"{kind} has no argument {field!r}{_instead(field, accepted)}"
    if error["type"] == "value_error.missing":
        return f"{kind} needs the argument {field!r}"
    return ": ".join(part for part in (kind, field, error["msg"]) if part)


def _instead(name: str, accepted: Sequence[str]) -> str:
    close = get_close_matches(name, accepted, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


PREFIX = "data_docs"


def pages(tables: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return file names and HTML: a page per table of newest results (rows of history.SCHEMA)."""
    checked = {name: newest(rows) for name, rows in tables.items() if rows}
    if not checked:
        return {}
    load()
    return {file_of(name): _page(name, rows) for name, rows in checked.items()}


def file_of(table: str) -> str:
    """Return the file of a table's page, which lies beside the report's."""
    return f"{PREFIX}.{table}.html"


def _page(name: str, rows: Sequence[Row]) -> str:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    kept = [json.loads(row["result"]) for row in rows]
    results = [_result(r) for r in kept if r["expectation_config"]["type"] != SUM]  # ours alone
    met = sum(bool(r.success) for r in results)
    checked = rows[0]["checked_at"]
    whole = ExpectationSuiteValidationResult(
        success=met == len(results),
        results=results,
        suite_name=name,
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": met,
            "unsuccessful_expectations": len(results) - met,
            "success_percent": 100 * met / len(results) if results else None,
        },
        meta={
            "run_id": {"run_name": rows[0]["run"], "run_time": checked.isoformat()},
            "validation_time": checked.isoformat(),
            "batch_kwargs": {},
        },
    )
    rendered = ValidationResultsPageRenderer().render(whole)
    return str(DefaultJinjaPageView().render(rendered))


def _result(kept: dict[str, Any]) -> Any:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    config = ExpectationConfiguration(**kept.pop("expectation_config"))
    return ExpectationValidationResult(expectation_config=config, **kept)
