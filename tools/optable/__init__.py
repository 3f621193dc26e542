"""Makes `server/gradguard/ops/data` with torch at hand, and asks torch about it. No part of what ships."""
