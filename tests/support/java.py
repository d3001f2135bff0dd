"""Java for processes that live a minute or two: what runs so briefly is not worth optimising."""

LEAN = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
