"""Values of protobuf are those of its own mapping to JSON."""

import random
import struct
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from tests.support.protobuf import CLASS

from sluice.sources.kafka.protobuf import value_of


def plain(value: Any) -> Any:
    """A value in which a number is as its text, a time has six digits, and null is left out."""
    match value:
        case dict():
            return {k: plain(v) for k, v in value.items() if v is not None}
        case list():
            return [plain(each) for each in value]
        case str() if value.startswith("2024-") and value.endswith("Z"):
            whole, _, fraction = value[:-1].partition(".")
            return f"{whole}.{fraction[:6].ljust(6, '0')}"
        case float():
            return value
    return str(value)


def filled(made: Any, chance: random.Random, depth: int = 0) -> Any:
    """Fill about half of a message's fields."""
    made.SetInParent()
    for field in made.DESCRIPTOR.fields:
        name, type_ = field.name, field.message_type
        if chance.random() < 0.5:
            continue
        if name in KNOWN:
            KNOWN[name](made, chance)
        elif type_ and depth < 3:
            parts = getattr(made, name)
            filled(parts.add() if field.is_repeated else parts, chance, depth + 1)
        elif not type_ and field.is_repeated:
            getattr(made, name).extend(scalar(field, chance) for _ in range(2))
        elif not type_:
            setattr(made, name, scalar(field, chance))
    return made


def moment(made: Any, chance: random.Random) -> None:
    made.at.seconds, made.at.nanos = 1_714_557_600, chance.choice([0, 5000, 123_456_789])


def span(made: Any, chance: random.Random) -> None:
    made.took.seconds, made.took.nanos = 3, chance.choice([0, 500_000_000])


KNOWN: dict[str, Callable[[Any, random.Random], object]] = {
    "at": moment,
    "took": span,
    "more": lambda made, _: made.more.update({"a": [1, None, 2.5], "b": {"c": True}}),
    "rates": lambda made, _: made.rates.update({"a": 1.5, "b": -0.25}),
    "named": lambda made, chance: filled(made.named["x"], chance),
}


def scalar(field: FieldDescriptor, chance: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            texts = ("", "x", "straße")
            is_bytes = field.type == FieldDescriptor.TYPE_BYTES
            return b"\xff\0" if is_bytes else chance.choice(texts)
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            odd = (0.1, float("inf"), float("-inf"), float("nan"), -0.0, 3.4028234663852886e38)
            return chance.choice([*odd, struct.unpack("f", chance.randbytes(4))[0]])
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice([0, 1, 7])
        case FieldDescriptor.CPPTYPE_UINT64 | FieldDescriptor.CPPTYPE_UINT32:
            return 2 ** (64 if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else 32) - 1
    is_long = field.cpp_type == FieldDescriptor.CPPTYPE_INT64
    return chance.choice([0, -1, -(2 ** (63 if is_long else 31))])


def test_values_are_those_of_protobufs_own_mapping_to_json() -> None:
    chance = random.Random(7)
    for _ in range(300):
        made = filled(CLASS(), chance)
        theirs = MessageToDict(
            made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        assert plain(value_of(CLASS, made.SerializeToString())) == plain(theirs)


def test_a_field_that_was_not_sent_is_null_if_protobuf_knows_it() -> None:
    found = value_of(CLASS, b"")
    assert {
        n: found[n] for n in ("a_int64", "a_string", "a_bool", "state", "r_int32", "rates")
    } == {"a_int64": 0, "a_string": "", "a_bool": False, "state": "NEW", "r_int32": [], "rates": {}}
    absent = ("o_int64", "w_int32", "at", "parent", "inner")
    assert [found[name] for name in absent] == [None] * 5
    zeros = CLASS(o_int64=0)
    zeros.w_int32.value = 0
    found = value_of(CLASS, zeros.SerializeToString())
    assert (found["o_int64"], found["w_int32"]) == (0, 0)


def test_unknown_fields_are_passed_over_and_unknown_words_stay_numbers() -> None:
    known = CLASS(a_int64=7, state=1).SerializeToString()
    found = value_of(CLASS, known + b"\xfa\x3f\x03abc")
    assert (found["a_int64"], found["state"]) == (7, "PAID")
    assert value_of(CLASS, CLASS(state=9).SerializeToString())["state"] == 9
