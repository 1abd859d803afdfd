"""Documents: the objects of JSON that Tidemark reads again, their format, and how older ones become today's."""
