import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from docutils.utils.math.unichar2tex import uni2tex_table
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

import lpcfg_sk

project = "lpcfg_sk"
copyright = "2026, the lpcfg_sk developers"
release = lpcfg_sk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
autosummary_generate = True
# The template of classes lists their methods.
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    page: []
    for page in (
        "index",
        "guide",
        "papers",
        "treebanks",
        "storage",
        "model_selection",
        "command_line",
        "extending",
    )
}
html_math_renderer = "mathml"
html_title = f"lpcfg_sk {release}"
html_show_sourcelink = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": ("_repr_html_",),
    "abort_on_example_error": True,
    "doc_module": ("lpcfg_sk",),
    "reference_url": {"lpcfg_sk": None},
    "backreferences_dir": None,
}

MEMBERS = {"method", "attribute", "property", "staticmethod", "classmethod"}


def link_by_last_name(app, env, node, content):
    """Link names of docstrings, of which only the last part need be right.

    Names of classes, functions and data are unique; ``Treebank.save`` says which of
    several methods is meant, and a bare ``save`` is the function.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("lpcfg_sk.")
    objects = env.domains["py"].objects
    for tail in (target, target.rpartition(".")[2]):
        homes = [
            name
            for name, place in objects.items()
            if name.endswith(f".{tail}") and not place.aliased
        ]
        if len(homes) > 1:
            homes = [name for name in homes if objects[name].objtype not in MEMBERS]
        if homes:
            break
    if len(homes) != 1:
        return None
    place = objects[homes[0]]
    return make_refnode(
        app.builder, node["refdoc"], place.docname, place.node_id, content, homes[0]
    )


# A command that the converter of docutils does not know.
SIZE_OF_BRACKET = re.compile(r"\\[Bb]ig+(?![A-Za-z])")


def write_mathml(as_block):
    """Write formulas as MathML, which browsers show without a script or a network."""

    def visit(writer, node):
        try:
            formula = SIZE_OF_BRACKET.sub("", node.astext().translate(uni2tex_table))
            writer.body.append(tex2mathml(formula, as_block=as_block))
        except MathError as error:
            message = "formula %r cannot be written as MathML: %s"
            logger = logging.getLogger(__name__)
            logger.warning(message, node.astext(), error, location=node)
        raise nodes.SkipNode

    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", write_mathml(False), write_mathml(True))
    app.connect("missing-reference", link_by_last_name)
