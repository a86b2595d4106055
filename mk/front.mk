# Pipeline targets: each run goes to mk/run.mk inside the workspace.
