"""Parts of a query rewritten as equivalent ones: trees in, trees out."""
