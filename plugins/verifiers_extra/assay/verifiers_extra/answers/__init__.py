"""Answers to questions of fact: searched for, cited, refused or not attempted."""
