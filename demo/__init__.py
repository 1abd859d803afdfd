"""The demo: real flights, laid out as change files, and every printed figure calculated a second time."""
