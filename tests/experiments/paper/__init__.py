"""Tests of the published study."""
