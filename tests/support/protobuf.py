"""Types of protobuf without its compiler: descriptors from a few words, and one with every type."""

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message_factory import GetMessageClass

from sluice.sources.kafka.schemas import pool_of

SCALARS = {name.removeprefix("TYPE_").lower(): n for name, n in FieldDescriptorProto.Type.items()}


def message(name: str, *fields: str, within: Iterable[DescriptorProto] = ()) -> DescriptorProto:
    """Return a message of fields such as `repeated .shop.Item items` and `optional int32 n`.

    Types with a dot are messages, with a `#` enums; `map T name` has texts as keys.
    """
    made = DescriptorProto(name=name, nested_type=within)
    for number, text in enumerate(fields, 1):
        _add(made, number, *text.rsplit(" ", 2))
    return made


def enum(name: str, *values: str) -> EnumDescriptorProto:
    each = [EnumValueDescriptorProto(name=v, number=n) for n, v in enumerate(values)]
    return EnumDescriptorProto(name=name, value=each)


def file(
    name: str,
    package: str,
    *messages: DescriptorProto,
    imports: Iterable[str] = (),
    enums: Iterable[EnumDescriptorProto] = (),
    syntax: str = "proto3",
) -> FileDescriptorProto:
    return FileDescriptorProto(
        name=name,
        package=package,
        dependency=imports,
        message_type=messages,
        enum_type=enums,
        syntax=syntax,
    )


def descriptors(*files: FileDescriptorProto) -> bytes:
    """Return what `protoc --descriptor_set_out` would write."""
    return FileDescriptorSet(file=files).SerializeToString()


def _add(made: DescriptorProto, number: int, *words: str) -> None:
    how, type_, name = words if len(words) == 3 else ("", *words)
    field = made.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if how == "map":
        entry = message(f"{name.title()}Entry", "string key", f"{type_} value")
        entry.options.map_entry = True
        made.nested_type.append(entry)
        how, type_ = "repeated", entry.name
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, entry.name
    elif type_ in SCALARS:
        field.type = SCALARS[type_]
    else:
        is_enum = type_.startswith("#")
        field.type = SCALARS["enum" if is_enum else "message"]
        field.type_name = type_.removeprefix("#")
    if how in ("repeated", "required"):
        field.label = FieldDescriptorProto.Label.Value(f"LABEL_{how.upper()}")
    if how == "optional":
        field.proto3_optional = True
        field.oneof_index = len(made.oneof_decl)
        made.oneof_decl.add(name=f"_{name}")


GOOGLE = ("duration", "field_mask", "struct", "timestamp", "wrappers")
WRAPPERS = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
ALL = (
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
)
ITEM = file("shop/item.proto", "shop", message("Item", "string sku", "int64 cents"))
ORDER = file(
    "shop/order.proto",
    "shop",
    message("First", "int64 other"),
    message(
        "Order",
        *(f"{type_} a_{type_}" for type_ in ALL),
        *(f"optional {type_} o_{type_}" for type_ in ALL),
        *(f"repeated {type_} r_{type_}" for type_ in ALL),
        *(f".google.protobuf.{name}Value w_{name.lower()}" for name in WRAPPERS),
        "#.shop.State state",
        "repeated .shop.Item items",
        "map double rates",
        "map .shop.Item named",
        ".shop.Order parent",
        ".google.protobuf.Timestamp at",
        ".google.protobuf.Duration took",
        ".google.protobuf.Struct more",
        ".shop.Order.Inner inner",
        within=[message("Inner", "int32 n")],
    ),
    imports=["shop/item.proto", *(f"google/protobuf/{name}.proto" for name in GOOGLE)],
    enums=[enum("State", "NEW", "PAID")],
)
CLASS = GetMessageClass(pool_of([ITEM, ORDER]).FindMessageTypeByName("shop.Order"))
