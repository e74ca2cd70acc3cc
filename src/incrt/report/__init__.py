"""What is shown to people: pictures and pages."""
