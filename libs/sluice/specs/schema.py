"""JSON Schemas of the two kinds of files, for editors that complete and check while one types."""

from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from sluice.specs.cogroup import Cogroup
from sluice.specs.dimension import Dimension, DimensionView
from sluice.specs.lookup import Lookup
from sluice.specs.model import Model
from sluice.specs.project import Project
from sluice.specs.settings import AirflowSettings
from sluice.specs.source import Source
from sluice.specs.topk import TopK
from sluice.specs.window_store import WindowStore

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VIEWS: tuple[type[Model], ...] = (TopK, Cogroup, Lookup, WindowStore)
TABLES: tuple[type[Model], ...] = (Source, Dimension, DimensionView, *VIEWS)
MODELS: tuple[type[BaseModel], ...] = (*TABLES, AirflowSettings)
VARIABLE = {"type": "string", "pattern": r"\$\{"}

JsonSchema = dict[str, Any]


def json_schema(of: Literal["pipeline", "project"] = "pipeline") -> JsonSchema:
    """The schema of a pipeline's file, or of `sluice.yaml`."""
    schema = _pipeline() if of == "pipeline" else _project()
    return {"$schema": DIALECT, "title": f"Sluice {of}", **_with_variables(schema)}


def _with_variables(schema: Any) -> Any:
    """The schema, where `${VAR}` may stand for a word, a number or a truth."""
    if isinstance(schema, list):
        return [_with_variables(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "enum" in schema or schema.get("type") in ("integer", "boolean"):
        return {"anyOf": [schema, VARIABLE]}
    return {key: _with_variables(part) for key, part in schema.items()}


def _project() -> JsonSchema:
    whole = Project.model_json_schema(by_alias=True)
    kept = {name: part for name, part in whole["properties"].items() if name not in Project.LOADED}
    definitions = {name: part for name, part in whole["$defs"].items() if name.endswith("Settings")}
    return _closed(kept, []) | {"$defs": definitions}


def _pipeline() -> JsonSchema:
    _, generated = models_json_schema([(model, "validation") for model in MODELS], by_alias=True)
    definitions = generated["$defs"]
    for model in TABLES:
        _as_written(definitions[model.__name__], is_view=model in VIEWS)
    definitions["Stream"]["required"].remove("key")
    return _closed(_header() | _sections(), ["pipeline", "schedule"]) | {"$defs": definitions}


def _header() -> JsonSchema:
    return {
        "pipeline": {"type": "string"},
        "description": {"type": "string"},
        "schedule": {"type": "string", "examples": ["@daily", "0 6 * * *", "assets"]},
        "start_date": {"type": "string", "examples": ["2017-01-01"]},
        "end_date": {"type": "string", "examples": ["2018-01-01"]},
        "catchup": {"type": "boolean"},
        "timezone": {"type": "string", "examples": ["UTC", "Europe/Berlin"]},
        "airflow": {"$ref": "#/$defs/AirflowSettings"},
    }


def _sections() -> JsonSchema:
    return {
        "sources": _named(Source),
        "dimensions": _named(Dimension, DimensionView),
        "views": _named(*VIEWS),
    }


def _named(*models: type[Model]) -> JsonSchema:
    choices = [{"$ref": f"#/$defs/{model.__name__}"} for model in models]
    one = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {"type": "object", "additionalProperties": one}


def _as_written(schema: JsonSchema, *, is_view: bool) -> None:
    """Leave out what is not written in the file: a table's name is its key."""
    for name in ("name", "pipeline"):
        schema["properties"].pop(name)
    required = [name for name in schema.get("required", []) if name not in ("name", "pipeline")]
    schema["required"] = [*required, "kind"] if is_view else required
    if "sql" in schema["properties"]:
        schema["required"] = ["kind"]


def _closed(properties: JsonSchema, required: list[str]) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
