"""Java for processes that live a minute or two: what runs so briefly is not worth optimising."""

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LEAN = {"JDK_JAVA_OPTIONS": BRIEF}
