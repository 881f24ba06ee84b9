"""Items and maps: loops that go on at the item that was in flight."""
