"""Compiles the bolts against the installed pystorm-source."""

from setuptools import setup

from pystorm_source.building import extensions

setup(ext_modules=extensions("fast_words/*.pyx"))
