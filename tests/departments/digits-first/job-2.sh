# jobgen slurm --site ./site.toml --nodes 2 --queue ada --gpus-per-node 6000ada:2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-node=6000ada:2
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=ada
# jobgen: note: the launcher is srun, that of site site
