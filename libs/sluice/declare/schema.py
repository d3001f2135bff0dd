"""JSON Schemas of the two kinds of files, for editors that complete and check while typing."""

from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from sluice.declare.project import Project
from sluice.declare.registry import kinds
from sluice.declare.settings import AirflowSettings
from sluice.declare.table_spec import SECTIONS, TableSpec
from sluice.language.interval import Schedule
from sluice.language.names import MARK, NAME

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLE = rf"^(?!.*{MARK}){NAME.pattern}$"
SCHEDULE = rf"^\s*({'|'.join((*Schedule.PRESETS, 'assets'))}|\S+(\s+\S+){{4}})\s*$"
DAY = r"^\s*\d{4}-?((0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])|W\d)"
VARIABLE = {"type": "string", "pattern": r"\$\{"}

JsonSchema = dict[str, Any]


def json_schema(of: Literal["pipeline", "project"] = "pipeline") -> JsonSchema:
    """Return the schema of a pipeline's file, or of `sluice.yaml`."""
    schema = _pipeline() if of == "pipeline" else _project()
    return {"$schema": DIALECT, "title": f"Sluice {of}", **_with_variables(schema)}


def _with_variables(schema: Any) -> Any:
    """Allow `${VAR}` wherever a word, a number or a form of text is asked for, but in no key."""
    if isinstance(schema, list):
        return [_with_variables(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if {"enum", "pattern"} & schema.keys() or schema.get("type") in ("integer", "boolean"):
        return {"anyOf": [schema, VARIABLE]}
    found = {key: _with_variables(part) for key, part in schema.items()}
    return found | ({"additionalProperties": False} if "patternProperties" in schema else {})


def _project() -> JsonSchema:
    whole = Project.model_json_schema(by_alias=True)
    kept = {name: part for name, part in whole["properties"].items() if name not in Project.LOADED}
    definitions = {name: part for name, part in whole["$defs"].items() if name.endswith("Settings")}
    return _closed_object(kept, []) | {"$defs": definitions}


def _pipeline() -> JsonSchema:
    tables = [kind.model for kind in kinds()]
    models: list[type[BaseModel]] = [*tables, AirflowSettings]
    _, generated = models_json_schema([(model, "validation") for model in models], by_alias=True)
    definitions = generated["$defs"]
    for model in tables:
        _as_written(model, definitions[model.__name__])
    sections: JsonSchema = {}
    for section in SECTIONS:
        choices = [{"$ref": f"#/$defs/{kind.model.__name__}"} for kind in kinds(section)]
        one = choices[0] if len(choices) == 1 else {"anyOf": choices}
        sections[section] = {"type": "object", "patternProperties": {TABLE: one}}
    return _closed_object(_header() | sections, ["pipeline", "schedule"]) | {"$defs": definitions}


def _header() -> JsonSchema:
    return {
        "pipeline": {"type": "string", "pattern": TABLE},
        "description": {"type": "string"},
        "schedule": {
            "type": "string",
            "pattern": SCHEDULE,
            "examples": ["@daily", "0 6 * * *", "assets"],
        },
        "start_date": {"type": "string", "pattern": DAY, "examples": ["2017-01-01"]},
        "end_date": {"type": "string", "pattern": DAY, "examples": ["2018-01-01"]},
        "catchup": {"type": "boolean"},
        "timezone": {"type": "string", "examples": ["UTC", "Europe/Berlin"]},
        "airflow": {"$ref": "#/$defs/AirflowSettings"},
    }


def _as_written(model: type[TableSpec], schema: JsonSchema) -> None:
    """Remove fields that are not written in the file: a table's name is its key."""
    for name in model.LOADED:
        schema["properties"].pop(name)
    required = [name for name in schema.get("required", []) if name not in model.LOADED]
    schema["required"] = [*required, "kind"] if model.SECTION == "views" else required


def _closed_object(properties: JsonSchema, required: list[str]) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
