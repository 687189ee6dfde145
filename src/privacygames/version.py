"""The version of this release."""

VERSION = "0.2.0"
"""Written here alone: the package's build reads it, and so does every certificate, without asking what is installed."""

BIBTEX = f"""
@software{{privacygames,
  title = {{privacygames: optimal obfuscation mechanisms with differential and distortion privacy guarantees}},
  author = {{{{the privacygames authors}}}},
  version = {{{VERSION}}},
  license = {{MIT}}
}}

@article{{shokri2015privacy,
  title = {{Privacy games: optimal user-centric data obfuscation}},
  author = {{Shokri, Reza}},
  journal = {{Proceedings on Privacy Enhancing Technologies}},
  volume = {{2015}},
  number = {{2}},
  year = {{2015}},
  doi = {{10.1515/popets-2015-0024}}
}}
"""
"""How to cite this release and the paper it implements."""
