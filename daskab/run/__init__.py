"""The service: jobs, plans, stores, tasks, and the driver that brings a run to its certificate."""
