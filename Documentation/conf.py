# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Sphinx's configuration: make html."""

project = "arx"
author = "The arx developers"
with open("../debian/changelog", encoding="utf-8") as changelog:
    release = version = changelog.readline().split("(")[1].split(")")[0]
html_theme = "alabaster"
html_theme_options = {"page_width": "64em", "body_max_width": "50em"}
html_copy_source = False
exclude_patterns = ["bench"]
highlight_language = "none"
