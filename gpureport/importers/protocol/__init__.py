"""What an importer and a tracker are, the options they take, and the account they give of every line."""
