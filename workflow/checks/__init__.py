"""Whether what is committed and advertised still holds: notebooks, and commands of documents."""
