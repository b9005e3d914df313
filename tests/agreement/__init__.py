"""What a model is shown and what the gate lets through, compared over the schemas of real tools and generated calls."""
