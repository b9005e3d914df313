"""The guided tour: a driver for mouse and keyboard, the steps, and the report with a picture of each."""
