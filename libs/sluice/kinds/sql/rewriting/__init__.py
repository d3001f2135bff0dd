"""Parts of a query written as others that mean the same: trees in, trees out."""
