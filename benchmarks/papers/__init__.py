"""Tables, figures and numeric claims of the five papers, one function each."""
