"""Certificates as a page to read: one HTML file that needs nothing else, with its figures beside it.

Needs the extra ``report``: matplotlib draws, jinja2 fills in.
"""
