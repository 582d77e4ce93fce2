import sys

from sfud_gateway.cli import main

sys.exit(main())
