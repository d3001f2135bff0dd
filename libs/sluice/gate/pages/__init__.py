"""Pages: the quality report as HTML, its summaries and its charts."""
