"""What a person is asked, decides and settles."""
