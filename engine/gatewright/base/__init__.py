"""What every floor stands on: errors, problems, ids, time, JSON values, safe writing."""
