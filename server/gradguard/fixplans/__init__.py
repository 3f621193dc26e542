"""Which repair a finding offers and how safe it is, worked out for findings that are shown."""
