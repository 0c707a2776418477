from sphinx.util.nodes import make_refnode

import lpcfg_sk

project = "lpcfg_sk"
copyright = "2026, the lpcfg_sk developers"
release = lpcfg_sk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
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
        "model_selection",
        "command_line",
        "extending",
    )
}
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


def link_by_last_name(app, env, node, content):
    """Link names of docstrings: public names are unique, so the last part will do."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    objects = env.domains["py"].objects
    homes = [
        name
        for name, place in objects.items()
        if name.rpartition(".")[2] == last and not place.aliased
    ]
    if len(homes) != 1:
        return None
    place = objects[homes[0]]
    return make_refnode(
        app.builder, node["refdoc"], place.docname, place.node_id, content, homes[0]
    )


def setup(app):
    app.connect("missing-reference", link_by_last_name)
