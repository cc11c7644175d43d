"""The HTTP side: API and pages in one application, what guards it, and that application on a port."""
