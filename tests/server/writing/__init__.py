"""Tests of long pieces."""
