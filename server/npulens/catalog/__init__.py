"""What is known about the NPU: rules, their wording, and the findings and fixes they lead to."""
