"""`python -m outword` is the command `outword`."""

from outword.cli import main

if __name__ == "__main__":
    main()
