"""What menus, keys and boxes say, as functions on a document; each makes an edit or touches the file. No widgets."""
