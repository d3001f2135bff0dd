"""Java for tests: what runs for minutes, and always something else, is not worth optimising."""

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LEAN = {"JDK_JAVA_OPTIONS": BRIEF}
