"""Small tables of figures for notebooks, in the colours of the page."""

from html import escape


def figures_html(title, figures, below=""):
    """Write a heading and a table of two columns.

    Parameters
    ----------
    title : str
        Name of the object.
    figures : mapping of str to object
        Names and values; whole numbers are written with commas.
    below : str, default=""
        HTML that follows the table.

    Returns
    -------
    html : str

    Examples
    --------
    >>> from lpcfg_sk._html import figures_html
    >>> "<td>1,200</td>" in figures_html("Treebank", {"trees": 1200})
    True
    """
    texts = {
        name: f"{value:,}" if isinstance(value, int) else str(value)
        for name, value in figures.items()
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f"<td>{escape(text)}</td></tr>"
        for name, text in texts.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>"
