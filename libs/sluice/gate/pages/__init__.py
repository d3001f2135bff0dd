"""Pages: the quality report as HTML, its digests and its charts."""
