"""Types of expressions, by the rules of Spark."""
