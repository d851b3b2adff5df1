"""A configuration object builds all parts; the loop is a method of an application object."""

from app import Application
from config import Config

if __name__ == "__main__":
    Application(Config()).run()
