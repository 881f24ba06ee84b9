"""A person's word: answer, resolve, accept, rerun, fork, finish, verify."""
